"""Front ends, code generation drivers and diagnostics of the qgpu compiler."""

"""Measurements that `qgpu bench` makes."""

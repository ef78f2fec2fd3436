"""Random single changes to a checkpoint's weights: which change a token, and which of those are found."""

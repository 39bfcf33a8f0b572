"""What is to be looked at: drawings, plots, tables, the viewer."""

"""What is read and written: model files, ACDMC's files, drawings."""

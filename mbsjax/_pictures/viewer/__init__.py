"""The page that plays a motion: its content, computed here, and the files in `page/` that show it."""

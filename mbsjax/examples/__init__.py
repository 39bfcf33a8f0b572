"""Model files to learn from: `mbsjax.load` reads them."""

"""Play in studies: where pins lie that are loaded, that are where they do most, or that are anywhere."""

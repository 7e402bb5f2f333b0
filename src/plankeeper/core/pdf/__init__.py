"""PDF documents: templates of typst, and the fonts for them."""

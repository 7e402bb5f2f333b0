"""Kinds of notes, with the colours that they are shown in."""

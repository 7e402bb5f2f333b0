"""The console in Chromium. A package, so that one browser serves all of it and is closed before other tests run."""

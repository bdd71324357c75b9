"""What people do with photos they looked at: albums, copies side by side, searches that are kept."""

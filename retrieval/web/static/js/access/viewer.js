// Closes the window that a viewer has opened to sign in: the viewer waits for that.
window.close();

"""Lists of numbers in little room: the words of images, and the images of words."""

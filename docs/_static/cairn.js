// Arrows of the navigation have no text of their own: what they do is said to those who listen to the page.
for (const arrow of document.querySelectorAll("summary")) {
  if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", "Show or hide the pages below");
}

// Arrows of the navigation have no text of their own: what they do is said to those who listen to the page.
for (const arrow of document.querySelectorAll("summary")) {
  if (!arrow.textContent.trim()) arrow.setAttribute("aria-label", "Show or hide the pages below");
}

// Commands are wrapped between words, not within --an-option.
for (const block of document.querySelectorAll(".highlight-bash pre, .highlight-sh pre")) {
  const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) found.push(texts.currentNode);
  for (const text of found) {
    const parts = text.data.split(/(\S*-\S*)/).map((part, place) => {
      if (place % 2 === 0) return part;
      const word = document.createElement("span");
      word.className = "word";
      word.textContent = part;
      return word;
    });
    text.replaceWith(...parts);
  }
}

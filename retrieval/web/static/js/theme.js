// Light or dark, where the visitor chose: before anything is drawn, so this is no module and stands first in the page.

try {
  const chosen = localStorage.getItem("cairn-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing: as the system has it.
}

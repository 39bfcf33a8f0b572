// Formulas are typeset in the browser by the copy of KaTeX beside this file.
for (const place of document.querySelectorAll(".arithmatex")) {
  const text = place.textContent.trim();
  katex.render(text.slice(2, -2), place, {displayMode: text.startsWith("\\["), throwOnError: false});
}

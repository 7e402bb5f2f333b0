// Shows the pages of an invoice's document, one after the other, until there is no further one. Without this script, the
// first page is shown, and the file is a download.
const MAX_PAGES = 50;

const pages = document.querySelector(".document-pages");
const first = pages?.querySelector("img");

// The response of a page has the number of pages. Over plain HTTP, browsers don't show it to scripts: then the next page
// is asked for until there is none.
function countPages({ src }) {
  const timing = performance.getEntriesByName(src).at(-1)?.serverTiming?.find(({ name }) => name === "pages");
  return timing ? Number(timing.description) : MAX_PAGES;
}

function showNext({ target }) {
  const number = pages.querySelectorAll("img").length + 1;
  if (number > Math.min(MAX_PAGES, countPages(target)) || target.src.startsWith("data:")) return;
  const image = target.cloneNode();
  image.src = target.src.replace(/[0-9]+$/, number);
  image.alt = `Page ${number} of the document`;
  image.addEventListener("load", showNext);
  image.addEventListener("error", () => image.remove());
  pages.append(image);
}

if (first) {
  first.addEventListener("load", showNext);
  if (first.complete && first.naturalWidth) showNext({ target: first });
}

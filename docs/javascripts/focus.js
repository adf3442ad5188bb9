// A keyboard reaches what scrolls: code, wide figures, and tables, which the theme wraps when the page is there.
const scrolling = '.md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img[src*="results-"])';
const reach = () => document.querySelectorAll(scrolling).forEach((node) => (node.tabIndex = 0));
reach();
new MutationObserver(reach).observe(document.querySelector(".md-content"), { childList: true, subtree: true });

// What mdBook leaves out for keyboards and screen readers: examples wider than the page can be scrolled
// by keys, the field of the search has a name, and the label that opens the contents is a button, which may be expanded.
for (const code of document.querySelectorAll("pre > code")) {
    code.tabIndex = 0;
}
document.getElementById("mdbook-searchbar")?.setAttribute("aria-label", "Search");
document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");

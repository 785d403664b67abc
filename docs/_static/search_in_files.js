/* Pages that are read from files may not read each other, so the search page has their text in a script. */
if (location.protocol === "file:") {
  const texts = new Promise((resolve) => {
    const script = document.createElement("script");
    script.onload = () => resolve(TEXTS);
    script.src = "_static/texts.js";
    document.head.append(script);
  });
  window.fetch = async (page) => ({
    text: async () => (await texts)[page.replace(/^\.\/|\.html$/g, "")],
  });
}

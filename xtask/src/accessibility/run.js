// Runs axe-core once the page has drawn itself, and leaves what it found in the page.
addEventListener("load", () => setTimeout(async () => {
  const result = await axe.run();
  const found = result.violations.map(rule => ({
    id: rule.id, impact: rule.impact, help: rule.help,
    places: rule.nodes.map(node => node.target.join(" ")),
  }));
  const out = document.createElement("pre");
  out.id = "axe-result";
  out.textContent = JSON.stringify({ found, passed: result.passes.length });
  document.body.append(out);
}, 2000));

// Copies the few files that pages load out of node_modules into static/vendor (git-ignored).
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "static", "vendor");
const files = {
  "htmx.min.js": "htmx.org/dist/htmx.min.js",
  "uPlot.esm.js": "uplot/dist/uPlot.esm.js",
  "uPlot.min.css": "uplot/dist/uPlot.min.css",
  "instrument-sans.woff2": "@fontsource-variable/instrument-sans/files/instrument-sans-latin-wght-normal.woff2",
  "swagger-ui.css": "swagger-ui-dist/swagger-ui.css",
  "swagger-ui-bundle.js": "swagger-ui-dist/swagger-ui-bundle.js",
};
// A wheel passes the files on, and so their licences.
const licences = [
  "htmx.org/LICENSE",
  "uplot/LICENSE",
  "@fontsource-variable/instrument-sans/LICENSE",
  "swagger-ui-dist/LICENSE",
  "swagger-ui-dist/NOTICE",
  "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt",
];

mkdirSync(target, { recursive: true });
for (const [name, source] of Object.entries(files)) {
  copyFileSync(join(here, "node_modules", source), join(target, name));
}
const texts = licences.map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name), "utf8")}`);
writeFileSync(join(target, "LICENCES.txt"), texts.join("\n\n"));

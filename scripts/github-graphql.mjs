// Validates GraphQL documents and their responses against GitHub's schema. See scripts/github.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.GITHUB_TOOLS}/node_modules/`);
const { buildSchema, parse, validate, execute } = require("graphql");

const [schemaFile, exchangesFile] = process.argv.slice(2);
// The published schema repeats two fields.
const schema = buildSchema(readFileSync(schemaFile, "utf8"), { assumeValidSDL: true });
let found = 0;
const report = (text) => {
  found += 1;
  console.log(text);
};
const exchanges = JSON.parse(readFileSync(exchangesFile, "utf8"));
for (const { request_body, body, status } of exchanges) {
  if (status !== 200 || !body?.data) continue;
  const { query, variables } = JSON.parse(request_body);
  const document = parse(query);
  const errors = validate(schema, document);
  for (const error of errors) report(`${query}: ${error.message}`);
  if (errors.length > 0) continue;
  // Executed on the response itself, which must have exactly the requested fields with the right types.
  const root = {};
  for (const [name, value] of Object.entries(body.data)) root[name] = value;
  const result = await execute({ schema, document, rootValue: root, variableValues: variables });
  for (const error of result.errors ?? []) report(`${query}: ${error.message}`);
  const [wanted, got] = [result.data, body.data].map((value) => JSON.stringify(sorted(value)));
  if (!result.errors && wanted !== got) report(`${query}: expected ${wanted}, received ${got}`);
}
console.error(`${exchanges.length} documents, ${found} violations`);
process.exitCode = found > 0 ? 1 : 0;

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

/** The API reference as markdown: kinds in, pages out. Pure. */
import type { CustomKind } from '#api/custom-kind.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const MADE = '<!-- Made by scripts/api-reference.ts; edit the schemas in src/api instead. -->';
const LONG = 12;

/** By the name of the file. */
export function referencePages(kinds: readonly CustomKind[]): Map<string, string> {
  return new Map([
    ['README.md', indexPage(kinds)],
    ...kinds.map((kind): [string, string] => [fileOf(kind), kindPage(kind)]),
  ]);
}

const fileOf = ({ type }: CustomKind) => `${type.kind.toLowerCase()}.md`;
const groupOf = ({ type }: CustomKind) => `${type.group}/${type.version}`;

function indexPage(kinds: readonly CustomKind[]): string {
  const rows = kinds.map((kind) => {
    const short = kind.shortNames[0] ?? '';
    return `| [${kind.type.kind}](${fileOf(kind)}) | \`${short}\` | \`${groupOf(kind)}\` | ${cell(kind.description)} |`;
  });
  return page('API reference', [
    'Every field of our kinds, from the schemas that the API server checks manifests with. `kubectl explain vm.spec --recursive` tells the same of a running plane. What is not listed is refused by its path, never ignored.',
    '',
    '| Kind | Short | Group | |',
    '|---|---|---|---|',
    ...rows,
  ]);
}

function kindPage(kind: CustomKind): string {
  const { type, columns, spec, status, shortNames, description } = kind;
  const names = [`\`${type.plural}\``, ...shortNames.map((name) => `\`${name}\``)].join(', ');
  return page(type.kind, [
    description,
    '',
    `\`${groupOf(kind)}\`, ${type.namespaced ? 'in a namespace' : 'of the whole cluster'}; for kubectl ${names}.`,
    '',
    '## Columns of kubectl get',
    '',
    '| Column | Field | |',
    '|---|---|---|',
    ...columns.map(
      ({ name, jsonPath, wide }) => `| ${name} | \`${cell(jsonPath)}\` | ${wide === true ? 'with `-o wide`' : ''} |`,
    ),
    '',
    ...section('spec', spec, 'What people write.'),
    ...(status === undefined ? [] : section('status', status, 'What our parts write; read it.')),
  ]);
}

const page = (title: string, lines: readonly string[]) =>
  `${[MADE, '', `# ${title}`, '', ...lines].join('\n').trimEnd()}\n`;

function section(name: string, schema: Schema, text: string): string[] {
  return [
    `## ${name}`,
    '',
    schema.description ?? text,
    '',
    '| Field | Type | |',
    '|---|---|---|',
    ...rowsOf(name, schema),
    '',
  ];
}

/** Every field below, parents before children. */
function rowsOf(path: string, schema: Schema): string[] {
  const inner = itemOf(schema);
  const required = new Set(inner.required);
  return Object.entries(inner.properties ?? {}).flatMap(([name, field]) => {
    const at = `${path}.${name}${suffixOf(field)}`;
    const notes = [required.has(name) ? 'Required.' : '', field.description ?? '', limitsOf(field)].filter(
      (note) => note !== '',
    );
    return [`| \`${at}\` | ${typeOf(field)} | ${cell(notes.join(' '))} |`, ...rowsOf(at, field)];
  });
}

/** What a list or a map is of; else itself. */
function itemOf(schema: Schema): Schema {
  if (isQuantity(schema)) return {};
  if (schema.items !== undefined) return itemOf(schema.items);
  return typeof schema.additionalProperties === 'object' ? itemOf(schema.additionalProperties) : schema;
}

const suffixOf = ({ items }: Schema) => (items === undefined ? '' : '[]');

function typeOf(schema: Schema): string {
  if (isQuantity(schema)) return 'quantity';
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema['x-kubernetes-int-or-string'] === true) return 'integer or string';
  return schema.format === 'date-time' ? 'time' : (schema.type ?? 'any');
}

function limitsOf(schema: Schema): string {
  const limits = [
    schema.enum === undefined || schema.enum.length > LONG
      ? ''
      : `One of ${schema.enum.map((word) => `\`${String(word)}\``).join(', ')}.`,
    schema.default === undefined ? '' : `Default \`${JSON.stringify(schema.default)}\`.`,
    schema.minimum === undefined ? '' : `At least ${schema.minimum}.`,
    schema.maximum === undefined ? '' : `At most ${schema.maximum}.`,
    schema.maxLength === undefined ? '' : `At most ${schema.maxLength} characters.`,
    schema.maxItems === undefined ? '' : `At most ${schema.maxItems}.`,
  ];
  return limits.filter((limit) => limit !== '').join(' ');
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ').replaceAll('<', '&lt;');

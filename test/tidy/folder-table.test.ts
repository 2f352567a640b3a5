import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFolderTable, checkLayerPicture } from '#test/tidy/folder-table.ts';
import { LAYERS } from '#test/tidy/layers.ts';

const FILES = ['src/main.ts', 'src/lib/clock.ts', 'src/lib/pki/der.ts', 'src/kube/meta.ts'];

const cases: Record<string, { rows: readonly string[]; want: readonly string[] }> = {
  'accepts a table that matches folders and layers': {
    rows: ['| `src/lib/` | a clock | – |', '| `src/lib/pki/` | DER | |', '| `src/kube/` | values | lib |'],
    want: [],
  },
  'reports a folder without a row': { rows: ['| `src/lib/` | a clock | – |'], want: ['src/kube/ has no row'] },
  'reports a row without a folder': {
    rows: ['| `src/lib/` | a clock | – |', '| `src/kube/`, `src/cube/` | values | lib |'],
    want: ['src/cube/ does not exist'],
  },
  'reports imports that differ from the layers': {
    rows: ['| `src/lib/` | a clock | kube |', '| `src/kube/` | values | lib |'],
    want: ['src/lib/ may import "kube", but layers.ts allows "–"'],
  },
};
for (const [name, { rows, want }] of Object.entries(cases)) {
  test(name, () => {
    const text = ['# Architecture', '', '## Folders', '', '| Folder | Owns | May import |', '|---|---|---|', ...rows];
    const page = { path: 'ARCHITECTURE.md', text: text.join('\n') };
    const files = FILES.map((path) => ({ path, text: '' }));
    assert.deepEqual(checkFolderTable(page, files), { rows: rows.length, problems: want });
  });
}

/** The rows of layers.ts, from the highest folder of the engine to the lowest. */
const layers = Object.keys(LAYERS)
  .flatMap((name) => (name.startsWith('engine/') ? [name.slice('engine/'.length)] : []))
  .toReversed();

const pictures: Record<string, { folders: readonly string[]; want: readonly string[] }> = {
  'accepts a picture in the order of the layers': { folders: layers, want: [] },
  'reports a folder that is missing in the picture': {
    folders: layers.filter((name) => name !== 'controllers'),
    want: ['engine/controllers is missing in the picture of the layers'],
  },
  'reports a folder that is shown before those that may import it': {
    folders: ['protobuf', ...layers.filter((name) => name !== 'protobuf')],
    want: ['engine/body may import engine/protobuf, which the picture of the layers shows before it'],
  },
};
for (const [name, { folders, want }] of Object.entries(pictures)) {
  test(name, () => {
    const text = `The folders of \`src/engine/\` are layers.\n\n\`\`\`\n rows   ${folders.join('\n        ')}\n\`\`\`\n`;
    assert.deepEqual(checkLayerPicture({ path: 'ARCHITECTURE.md', text }), want);
  });
}

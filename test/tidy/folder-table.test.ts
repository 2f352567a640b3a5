import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFolderTable } from '#test/tidy/folder-table.ts';

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

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hideOwners } from '#test/transcripts/hide-owners.ts';

const cases: Record<string, { shown: string; left: string }> = {
  YAML: {
    shown:
      'metadata:\n  labels: {}\n  managedFields:\n  - apiVersion: v1\n    fieldsV1:\n      f:a: {}\n  name: x\nspec: {}',
    left: 'metadata:\n  labels: {}\n  name: x\nspec: {}',
  },
  'YAML of a list': {
    shown: 'items:\n- metadata:\n    managedFields:\n    - apiVersion: v1\n    name: x\n- metadata: {}',
    left: 'items:\n- metadata:\n    name: x\n- metadata: {}',
  },
  JSON: {
    shown: '{\n  "a": 1,\n  "managedFields": [\n    {\n      "b": []\n    }\n  ],\n  "name": "x"\n}',
    left: '{\n  "a": 1,\n  "name": "x"\n}',
  },
  describe: {
    shown: 'Metadata:\n  Managed Fields:\n    API Version:  v1\n    fieldsV1:\n      f:a:\n  UID:  u\nSpec:',
    left: 'Metadata:\n  UID:  u\nSpec:',
  },
  'describe with aligned values': {
    shown: 'Metadata:\n  Created At:  t\n  Managed Fields:\n    Manager:  m\n  UID:     u\nSpec:\n  A:  b',
    left: 'Metadata:\n  Created At:  t\n  UID:         u\nSpec:\n  A:  b',
  },
  'describe with longer names after the block': {
    shown: 'Metadata:\n  Of:  t\n  Managed Fields:\n    Manager:  m\n  Version:  1\n  UID:      u',
    left: 'Metadata:\n  Of:       t\n  Version:  1\n  UID:      u',
  },
  'text without managedFields': { shown: 'a: managedFields\nb:\n  - c', left: 'a: managedFields\nb:\n  - c' },
};

for (const [what, { shown, left }] of Object.entries(cases)) {
  test(what, () => assert.equal(hideOwners(shown), left));
}

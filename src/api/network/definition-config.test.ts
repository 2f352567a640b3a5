import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDefinitionConfig } from '#api/network/definition-config.ts';

const TYPE = 'expected the name of a plugin such as "bridge", without a path';

const accepted: Record<string, { config: unknown; want: unknown }> = {
  'a single plugin becomes a list with the name of the definition': {
    config: { type: 'bridge', bridge: 'br0' },
    want: { cniVersion: '1.0.0', name: 'lan', plugins: [{ type: 'bridge', bridge: 'br0' }] },
  },
  'a single plugin keeps its version and name': {
    config: { cniVersion: '0.4.0', name: 'own', type: 'macvlan', ipam: { type: 'dhcp' } },
    want: { cniVersion: '0.4.0', name: 'own', plugins: [{ type: 'macvlan', ipam: { type: 'dhcp' } }] },
  },
  'a list keeps its fields': {
    config: { cniVersion: '1.0.0', disableCheck: true, plugins: [{ type: 'bridge', ipam: {} }, { type: 'tuning' }] },
    want: {
      disableCheck: true,
      cniVersion: '1.0.0',
      name: 'lan',
      plugins: [{ type: 'bridge', ipam: {} }, { type: 'tuning' }],
    },
  },
};

for (const [name, { config, want }] of Object.entries(accepted)) {
  test(name, () => {
    const read = readDefinitionConfig(JSON.stringify(config), 'lan');
    assert.deepEqual('config' in read ? JSON.parse(read.config) : read, want);
  });
}

const refused: Record<string, { text: string; problem: string }> = {
  'no text': { text: ' ', problem: 'spec.config is empty; expected a CNI configuration as JSON' },
  'no JSON': { text: 'type: bridge', problem: 'spec.config is not a JSON object' },
  'a list as JSON': { text: '[]', problem: 'spec.config is not a JSON object' },
  'no plugin': {
    text: '{"name":"lan"}',
    problem: 'spec.config has no plugin; expected "type", or "plugins" with 1 to 16 plugins',
  },
  'an empty list of plugins': {
    text: '{"plugins":[]}',
    problem: 'spec.config has no plugin; expected "type", or "plugins" with 1 to 16 plugins',
  },
  'a plugin that is a text': { text: '{"plugins":["bridge"]}', problem: 'spec.config: a plugin is not an object' },
  'a plugin without a type': { text: '{"plugins":[{}]}', problem: `spec.config: type is missing; ${TYPE}` },
  'a plugin with a path': {
    text: '{"type":"../../bin/sh"}',
    problem: `spec.config: type is "../../bin/sh"; ${TYPE}`,
  },
  'an address plugin with a path': {
    text: '{"type":"bridge","ipam":{"type":"/bin/sh"}}',
    problem: `spec.config: ipam.type is "/bin/sh"; ${TYPE}`,
  },
  'more than 64 KiB': {
    text: JSON.stringify({ type: 'bridge', note: 'é'.repeat(33_000) }),
    problem: 'spec.config has 66027 bytes; expected at most 65536',
  },
  'deeply nested values': {
    text: '['.repeat(40) + ']'.repeat(40),
    problem: 'spec.config is nested deeper than 32 levels',
  },
};

for (const [name, { text, problem }] of Object.entries(refused)) {
  test(`a configuration is refused with ${name}`, () => {
    assert.deepEqual(readDefinitionConfig(text, 'lan'), { problem });
  });
}

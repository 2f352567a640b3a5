import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { readDefinitionConfig } from '#api/network/definition-config.ts';
import { describeMissingDefinition } from '#api/network/missing-definition.ts';

const example = (namespace: string, name: string, bridge = name) => ({
  apiVersion: 'k8s.cni.cncf.io/v1',
  kind: 'NetworkAttachmentDefinition',
  metadata: { namespace, name },
  spec: { config: `{"cniVersion":"1.0.0","name":"${name}","type":"bridge","bridge":"${bridge}"}` },
});

const cases: Record<string, { networkName: string; namespace?: string; text: RegExp; want?: unknown }> = {
  'a bare name, which may be that of a bridge': {
    networkName: 'br0',
    text: /^There is no NetworkAttachmentDefinition "shop\/br0" or "default\/br0"; a cluster administrator must create it\. For a bridge of the nodes: \{/,
    want: example('shop', 'br0'),
  },
  'a VM of the shared namespace': {
    networkName: 'br0',
    namespace: 'default',
    text: /^There is no NetworkAttachmentDefinition "default\/br0"; /,
    want: example('default', 'br0'),
  },
  'a name with a namespace': {
    networkName: 'default/lan',
    text: /^There is no NetworkAttachmentDefinition "default\/lan"; /,
    want: example('default', 'lan'),
  },
  'a name that is too long for a bridge': {
    networkName: 'the-lan-of-building-7',
    text: /"shop\/the-lan-of-building-7"/,
    want: example('shop', 'the-lan-of-building-7', 'br0'),
  },
  'a bridge whose name is not valid for an object': {
    networkName: 'Lan_1',
    text: /^Network name "Lan_1" cannot be the name of a NetworkAttachmentDefinition; .* set multus\.networkName to that name: /,
    want: example('shop', 'lan-1', 'Lan_1'),
  },
  'a name from which nothing is left': {
    networkName: '__',
    text: /for example "lan"/,
    want: example('shop', 'lan', 'br0'),
  },
  'a name with options': {
    networkName: `br0,x='y'`,
    text: /cannot be the name/,
    want: example('shop', 'br0-x-y', 'br0'),
  },
  'another namespace': {
    networkName: 'admin/lan',
    text: /^Network name "admin\/lan" must be in the namespace of the VM or in "default": expected a name in "shop" or "default"$/,
  },
};

for (const [name, { networkName, namespace = 'shop', text, want }] of Object.entries(cases)) {
  test(`the message for ${name}`, () => {
    const message = describeMissingDefinition(networkName, namespace);
    assert.match(message, text);
    if (want === undefined) return;
    const shown = parse(message.slice(message.indexOf('{'))) as { spec: { config: string } };
    assert.deepEqual(shown, want);
    assert.ok('config' in readDefinitionConfig(shown.spec.config, 'other'), 'the shown configuration is accepted');
  });
}

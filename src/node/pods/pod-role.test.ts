import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '#kube/core-kinds.ts';
import { podRole } from '#node/pods/pod-role.ts';

const LABELS = { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': 'u' };
const ANNOTATIONS = { 'kubevirt.io/domain': 'db' };
const LAUNCHER = { labels: LABELS, annotations: ANNOTATIONS };
const owned = (kind: string, apiVersion = 'apps/v1') => ({
  ownerReferences: [{ kind, apiVersion, name: 'o', uid: 'o', controller: true }],
});

function aPod(metadata: Pod['metadata'], image: string, container = 'compute'): Pod {
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: container, image }] } };
}

const launcher = { is: 'launcher', instance: 'db', uid: 'u' };
const refused = (image: string, waits = false) => ({ is: 'unsupported', image, waits });

const cases: Record<string, { pod: Pod; want: object }> = {
  'a launcher': { pod: aPod(LAUNCHER, 'selfsame/virt-launcher'), want: launcher },
  'a launcher with a tag': { pod: aPod(LAUNCHER, 'selfsame/virt-launcher:1.0'), want: launcher },
  'a launcher with its registry': { pod: aPod(LAUNCHER, 'docker.io/selfsame/virt-launcher:1.0'), want: launcher },
  'labels alone make no launcher': { pod: aPod(LAUNCHER, 'nginx'), want: refused('nginx') },
  'nor does another container': {
    pod: aPod(LAUNCHER, 'selfsame/virt-launcher', 'other'),
    want: refused('selfsame/virt-launcher'),
  },
  'nor does the image alone': { pod: aPod({}, 'selfsame/virt-launcher'), want: refused('selfsame/virt-launcher') },
  'a launcher without its instance': {
    pod: aPod({ labels: LABELS }, 'selfsame/virt-launcher'),
    want: refused('selfsame/virt-launcher'),
  },
  'our own program': { pod: aPod({}, 'selfsame/selfsame:1.0', 'main'), want: { is: 'program' } },
  'an image that only begins alike': {
    pod: aPod({}, 'selfsame/selfsame-evil'),
    want: refused('selfsame/selfsame-evil'),
  },
  'a pod of a DaemonSet waits': { pod: aPod(owned('DaemonSet'), 'proxy'), want: refused('proxy', true) },
  'a pod of a Deployment does not': { pod: aPod(owned('ReplicaSet'), 'nginx'), want: refused('nginx') },
  "a DaemonSet of somebody else's": { pod: aPod(owned('DaemonSet', 'x.io/v1'), 'proxy'), want: refused('proxy') },
};

for (const [sentence, { pod, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(podRole(pod), want));
}

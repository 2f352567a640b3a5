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
const unsupported = (image: string, waits = false) => ({ is: 'unsupported', image, waits });

const cases: Record<string, { pod: Pod; want: object }> = {
  'recognizes a launcher': { pod: aPod(LAUNCHER, 'selfsame/virt-launcher'), want: launcher },
  'recognizes a launcher image with a tag': { pod: aPod(LAUNCHER, 'selfsame/virt-launcher:1.0'), want: launcher },
  'recognizes a launcher image with its registry': {
    pod: aPod(LAUNCHER, 'docker.io/selfsame/virt-launcher:1.0'),
    want: launcher,
  },
  'does not support another image with the labels of a launcher': {
    pod: aPod(LAUNCHER, 'nginx'),
    want: unsupported('nginx'),
  },
  'does not support a launcher image in another container': {
    pod: aPod(LAUNCHER, 'selfsame/virt-launcher', 'other'),
    want: unsupported('selfsame/virt-launcher'),
  },
  'does not support a launcher image without labels': {
    pod: aPod({}, 'selfsame/virt-launcher'),
    want: unsupported('selfsame/virt-launcher'),
  },
  'does not support a launcher that names no instance': {
    pod: aPod({ labels: LABELS }, 'selfsame/virt-launcher'),
    want: unsupported('selfsame/virt-launcher'),
  },
  'recognizes a pod of this program': { pod: aPod({}, 'selfsame/selfsame:1.0', 'main'), want: { is: 'program' } },
  'does not support an image whose name only begins like the program': {
    pod: aPod({}, 'selfsame/selfsame-evil'),
    want: unsupported('selfsame/selfsame-evil'),
  },
  'lets an unsupported pod of a DaemonSet wait': {
    pod: aPod(owned('DaemonSet'), 'proxy'),
    want: unsupported('proxy', true),
  },
  'does not let an unsupported pod of a ReplicaSet wait': {
    pod: aPod(owned('ReplicaSet'), 'nginx'),
    want: unsupported('nginx'),
  },
  'does not let a pod of a DaemonSet in another group wait': {
    pod: aPod(owned('DaemonSet', 'x.io/v1'), 'proxy'),
    want: unsupported('proxy'),
  },
};

for (const [sentence, { pod, want }] of Object.entries(cases)) {
  test(sentence, () => assert.deepEqual(podRole(pod), want));
}

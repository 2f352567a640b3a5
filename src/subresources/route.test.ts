import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resourcesDocument } from '#subresources/discovery.ts';
import { parseSubresourcePath, type VmResource, type SubresourceRoute } from '#subresources/route.ts';
import type { SubresourceVerb } from '#api/verbs/verb.ts';

const GROUP = '/apis/subresources.kubevirt.io';
const NS = `${GROUP}/v1/namespaces/ns`;
const UNKNOWN: SubresourceRoute = { kind: 'unknown' };

const aVerb = (resource: VmResource, verb: SubresourceVerb, method: 'PUT' | 'GET' = 'PUT'): SubresourceRoute => ({
  kind: 'verb',
  resource,
  verb,
  method,
  namespace: 'ns',
  name: 'db',
});

const aForward = (resource: VmResource, port: number, protocol: 'tcp' | 'udp'): SubresourceRoute => ({
  kind: 'verb',
  resource,
  verb: 'portforward',
  method: 'GET',
  namespace: 'ns',
  name: 'db',
  forward: { port, protocol },
});

const paths: Record<string, SubresourceRoute> = {
  [GROUP]: { kind: 'group' },
  [`${GROUP}/v1`]: { kind: 'resources', version: 'v1' },
  [`${GROUP}/v1alpha3`]: { kind: 'resources', version: 'v1alpha3' },
  [`${GROUP}/v1/`]: { kind: 'resources', version: 'v1' },
  [`${GROUP}/v1/version`]: { kind: 'version' },
  [`${GROUP}/v1/healthz`]: { kind: 'healthz' },
  [`${GROUP}/v1/guestfs`]: { kind: 'unimplemented', what: 'guestfs' },
  [`${NS}/virtualmachines/db/start`]: aVerb('virtualmachines', 'start'),
  [`${NS}/virtualmachineinstances/db/console`]: aVerb('virtualmachineinstances', 'console', 'GET'),
  [`${NS}/virtualmachines/db/addvolume`]: aVerb('virtualmachines', 'addvolume'),
  [`${NS}/virtualmachineinstances/db/addvolume`]: aVerb('virtualmachineinstances', 'addvolume'),
  [`${NS}/virtualmachines/db/exportdisk`]: { kind: 'disk', verb: 'exportdisk', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/importdisk`]: { kind: 'disk', verb: 'importdisk', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/exportdisk/a`]: UNKNOWN,
  [`${NS}/virtualmachineinstances/db/exportdisk`]: UNKNOWN,
  [`${NS}/virtualmachines/db/migrate`]: aVerb('virtualmachines', 'migrate'),
  [`${NS}/virtualmachines/db/memorydump`]: { kind: 'unimplemented', what: 'virtualmachines/memorydump' },
  [`${NS}/virtualmachineinstances/db/guestosinfo`]: aVerb('virtualmachineinstances', 'guestosinfo', 'GET'),
  [`${NS}/virtualmachineinstances/db/vnc`]: aVerb('virtualmachineinstances', 'vnc', 'GET'),
  [`${NS}/virtualmachineinstances/db/vnc/screenshot`]: aVerb('virtualmachineinstances', 'vnc/screenshot', 'GET'),
  [`${NS}/virtualmachineinstances/db/vnc/moon`]: UNKNOWN,
  [`${NS}/virtualmachineinstances/db/portforward/22`]: aForward('virtualmachineinstances', 22, 'tcp'),
  [`${NS}/virtualmachineinstances/db/portforward/53/udp`]: aForward('virtualmachineinstances', 53, 'udp'),
  [`${NS}/virtualmachines/db/portforward/65535/tcp`]: aForward('virtualmachines', 65535, 'tcp'),
  [`${NS}/virtualmachines/db/portforward`]: { kind: 'invalid', why: 'port must not be empty' },
  [`${NS}/virtualmachines/db/portforward/0`]: { kind: 'invalid', why: 'port "0" is not valid; expected 1 to 65535' },
  [`${NS}/virtualmachines/db/portforward/65536`]: {
    kind: 'invalid',
    why: 'port "65536" is not valid; expected 1 to 65535',
  },
  [`${NS}/virtualmachines/db/portforward/ssh`]: {
    kind: 'invalid',
    why: 'port "ssh" is not valid; expected 1 to 65535',
  },
  [`${NS}/virtualmachines/db/portforward/22/sctp`]: {
    kind: 'invalid',
    why: 'protocol "sctp" is not valid; expected tcp or udp',
  },
  [`${NS}/expand-vm-spec`]: { kind: 'expand', namespace: 'ns' },
  [`${NS}/virtualmachines/db/expand-spec`]: { kind: 'expand', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/expand-spec/more`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk/upload`]: { kind: 'upload', namespace: 'ns', claim: 'disk' },
  [`${NS}/persistentvolumeclaims/disk/upload/more`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk/exportdisk`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk`]: UNKNOWN,
  [`${NS}/virtualmachines/db/portforward/22/tcp/more`]: UNKNOWN,
  [`${NS}/virtualmachineinstances/db/usbredir`]: {
    kind: 'unsupported',
    why: 'usbredir is not supported: guests cannot use USB devices of clients',
  },
  [`${NS}/virtualmachineinstances/db/vsock`]: {
    kind: 'unsupported',
    why: 'vsock is not supported: guests have no VSOCK device; use portforward',
  },
  [`${NS}/virtualmachines/db/vsock`]: UNKNOWN,
  [`${NS}/../other/virtualmachines/db/start`]: UNKNOWN,
  [`${NS}/%2e%2e/other/virtualmachines/db/start`]: UNKNOWN,
  [`${NS}/virtualmachines/db%2fstart`]: UNKNOWN,
  [`${NS}/virtualmachines/db/vnc`]: UNKNOWN,
  // Verbs of one kind are unknown for the other.
  [`${NS}/virtualmachines/db/pause`]: UNKNOWN,
  [`${NS}/virtualmachineinstances/db/start`]: UNKNOWN,
  [`${NS}/virtualmachines/db/start/now`]: UNKNOWN,
  [`${NS}/virtualmachines/db/constructor`]: UNKNOWN,
  [`${NS}/constructor/db/start`]: UNKNOWN,
  [`${NS}/virtualmachines/db`]: UNKNOWN,
  [`${NS}/virtualmachines//start`]: UNKNOWN,
  [`${GROUP}/v2`]: UNKNOWN,
  [`${GROUP}/v1/nothing`]: UNKNOWN,
  '/apis': UNKNOWN,
  '/openapi/v3': UNKNOWN,
};
for (const [path, want] of Object.entries(paths)) {
  test(`${path} is ${want.kind}`, () => assert.deepEqual(parseSubresourcePath(path), want));
}

test('every resource in discovery is served, with the verb by which it is authorized', () => {
  const { resources } = resourcesDocument('v1');
  assert.deepEqual(
    resources.map(({ name, verbs }) => `${verbs.join()} ${name}`),
    [
      'update virtualmachines/start',
      'update virtualmachines/stop',
      'update virtualmachines/restart',
      'update virtualmachines/migrate',
      'update virtualmachines/addvolume',
      'update virtualmachines/removevolume',
      'get virtualmachines/portforward',
      'update virtualmachines/releasedisk',
      'update virtualmachines/adoptstate',
      'update virtualmachines/releasestate',
      'update virtualmachineinstances/pause',
      'update virtualmachineinstances/unpause',
      'update virtualmachineinstances/freeze',
      'update virtualmachineinstances/unfreeze',
      'update virtualmachineinstances/softreboot',
      'update virtualmachineinstances/reset',
      'get virtualmachineinstances/console',
      'update virtualmachineinstances/addvolume',
      'update virtualmachineinstances/removevolume',
      'get virtualmachineinstances/vnc',
      'get virtualmachineinstances/vnc/screenshot',
      'get virtualmachineinstances/portforward',
      'get virtualmachineinstances/guestosinfo',
      'get virtualmachineinstances/userlist',
      'get virtualmachineinstances/filesystemlist',
      'get virtualmachines/exportdisk',
      'get virtualmachines/importdisk',
      'get virtualmachines/expand-spec',
      'update expand-vm-spec',
      'get persistentvolumeclaims/upload',
    ],
  );
  for (const { name } of resources) {
    const below = name.endsWith('portforward') ? '/22' : '';
    const { kind } = parseSubresourcePath(`${NS}/${name.replace('/', '/db/')}${below}`);
    const special = /(?:ex|im)port(?=disk)|expand|upload/.exec(name)?.[0].replace(/^(ex|im)port$/, 'disk');
    assert.equal(kind, special ?? 'verb', name);
  }
});

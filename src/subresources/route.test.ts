import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Verb } from '#api/can.ts';
import { resourcesDocument } from '#subresources/discovery.ts';
import { parseRoute, type Resource, type Route } from '#subresources/route.ts';

const GROUP = '/apis/subresources.kubevirt.io';
const NS = `${GROUP}/v1/namespaces/ns`;
const UNKNOWN: Route = { kind: 'unknown' };

const aVerb = (resource: Resource, verb: Verb, method: 'PUT' | 'GET' = 'PUT'): Route => ({
  kind: 'verb',
  resource,
  verb,
  method,
  namespace: 'ns',
  name: 'db',
});

const paths: Record<string, Route> = {
  [GROUP]: { kind: 'group' },
  [`${GROUP}/v1`]: { kind: 'resources', version: 'v1' },
  [`${GROUP}/v1alpha3`]: { kind: 'resources', version: 'v1alpha3' },
  [`${GROUP}/v1/`]: { kind: 'resources', version: 'v1' },
  [`${GROUP}/v1/version`]: { kind: 'version' },
  [`${GROUP}/v1/healthz`]: { kind: 'healthz' },
  [`${GROUP}/v1/guestfs`]: { kind: 'later', what: 'guestfs' },
  [`${NS}/virtualmachines/db/start`]: aVerb('virtualmachines', 'start'),
  [`${NS}/virtualmachineinstances/db/console`]: aVerb('virtualmachineinstances', 'console', 'GET'),
  [`${NS}/virtualmachines/db/addvolume`]: aVerb('virtualmachines', 'addvolume'),
  [`${NS}/virtualmachineinstances/db/addvolume`]: aVerb('virtualmachineinstances', 'addvolume'),
  [`${NS}/virtualmachines/db/exportdisk`]: { kind: 'disk', verb: 'exportdisk', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/importdisk`]: { kind: 'disk', verb: 'importdisk', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/exportdisk/a`]: UNKNOWN,
  [`${NS}/virtualmachineinstances/db/exportdisk`]: UNKNOWN,
  [`${NS}/virtualmachines/db/migrate`]: aVerb('virtualmachines', 'migrate'),
  [`${NS}/virtualmachines/db/memorydump`]: { kind: 'later', what: 'virtualmachines/memorydump' },
  [`${NS}/virtualmachineinstances/db/vnc/screenshot`]: {
    kind: 'later',
    what: 'virtualmachineinstances/vnc/screenshot',
  },
  [`${NS}/expand-vm-spec`]: { kind: 'expand', namespace: 'ns' },
  [`${NS}/virtualmachines/db/expand-spec`]: { kind: 'expand', namespace: 'ns', name: 'db' },
  [`${NS}/virtualmachines/db/expand-spec/more`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk/upload`]: { kind: 'upload', namespace: 'ns', claim: 'disk' },
  [`${NS}/persistentvolumeclaims/disk/upload/more`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk/exportdisk`]: UNKNOWN,
  [`${NS}/persistentvolumeclaims/disk`]: UNKNOWN,
  // Verbs of one kind are none of the other.
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
  test(`${path} is ${want.kind}`, () => assert.deepEqual(parseRoute(path), want));
}

test('what discovery shows is served, with the verb by which it is authorized', () => {
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
      'update virtualmachineinstances/pause',
      'update virtualmachineinstances/unpause',
      'update virtualmachineinstances/softreboot',
      'update virtualmachineinstances/reset',
      'get virtualmachineinstances/console',
      'update virtualmachineinstances/addvolume',
      'update virtualmachineinstances/removevolume',
      'get virtualmachines/exportdisk',
      'get virtualmachines/importdisk',
      'get virtualmachines/expand-spec',
      'update expand-vm-spec',
      'get persistentvolumeclaims/upload',
    ],
  );
  for (const { name } of resources) {
    const { kind } = parseRoute(`${NS}/${name.replace('/', '/db/')}`);
    const special = ['disk', 'expand', 'upload'].find((one) => name.includes(one));
    assert.equal(kind, special ?? 'verb', name);
  }
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alternativesText, parseObjectPath } from '#cli/connection/missing-object.ts';
import { forbidden, notFound } from '#kube/api-error.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/lab/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/lab/virtualmachineinstances';

const paths: Record<string, string | undefined> = {
  '/apis/kubevirt.io/v1/namespaces/lab/virtualmachines/db': `${VMS} lab/db`,
  '/apis/subresources.kubevirt.io/v1/namespaces/lab/virtualmachines/db/start': `${VMS} lab/db`,
  '/apis/subresources.kubevirt.io/v1/namespaces/lab/virtualmachineinstances/a%2Fb/vnc?x=1': `${VMIS} lab/a/b`,
  '/api/v1/namespaces/lab/persistentvolumeclaims/d?x': '/api/v1/namespaces/lab/persistentvolumeclaims lab/d',
  '/api/v1/namespaces/lab': undefined,
  '/apis/kubevirt.io/v1/namespaces/lab/virtualmachines': undefined,
};
for (const [path, want] of Object.entries(paths)) {
  test(`finds the object of ${path}`, () => {
    const found = parseObjectPath(path);
    assert.equal(found && `${found.collection} ${found.namespace}/${found.name}`, want);
  });
}

interface Case {
  readonly path: string;
  readonly vms?: readonly string[];
  readonly vmis?: readonly string[];
  readonly hasNamespace?: boolean;
  readonly want: string;
}
const cases: Record<string, Case> = {
  'a name that is near': { path: `${VMS}/dbb`, vms: ['db', 'web'], want: '; did you mean "db"?' },
  'all names': { path: `${VMS}/nosuch`, vms: ['db', 'web'], want: '; the VMs there are db, web' },
  'the first of many names': {
    path: `${VMS}/nosuch`,
    vms: Array.from({ length: 12 }, (_, i) => `vm-${i}`),
    want: '; the VMs there are vm-0, vm-1, vm-2, vm-3, vm-4, vm-5, vm-6, vm-7, vm-8, vm-9 and 2 more',
  },
  'an empty namespace': { path: `${VMS}/nosuch`, want: '; it has no VMs, choose another with --namespace' },
  'a namespace that does not exist': {
    path: `${VMS}/nosuch`,
    hasNamespace: false,
    want: '; the namespace does not exist, choose another with --namespace',
  },
  'a VM that does not run': {
    path: `${VMIS}/db`,
    vms: ['db'],
    vmis: ['db2'],
    want: '; VM db is not running: start it with virtctl start db',
  },
  'a VM that does not run, after a verb of the VM': {
    path: `${VMS}/db/migrate`,
    vms: ['db', 'web'],
    want: '; VM db is not running: start it with virtctl start db',
  },
  'only the namespace if the user may not list': { path: '/apis/x/v1/namespaces/lab/secrets/s', want: '' },
};
for (const [title, { path, vms = [], vmis = [], hasNamespace = true, want }] of Object.entries(cases)) {
  test(`names ${title}`, async () => {
    const lists = new Map([
      [`${VMS}?limit=500`, vms],
      [`${VMIS}?limit=500`, vmis],
    ]);
    const get = async (asked: string) => {
      const names = lists.get(asked);
      if (names !== undefined) return { items: names.map((name) => ({ metadata: { name } })) };
      const known = [...vms.map((name) => `${VMS}/${name}`), ...(hasNamespace ? ['/api/v1/namespaces/lab'] : [])];
      if (known.includes(asked)) return {};
      if (asked.includes('secrets')) throw forbidden({ group: '', plural: 'secrets' }, '', 'no');
      throw notFound({ group: '', plural: 'namespaces' }, 'lab');
    };
    const missing = parseObjectPath(path);
    assert.ok(missing);
    assert.equal(await alternativesText({ get }, missing), ` in namespace "lab"${want}`);
  });
}

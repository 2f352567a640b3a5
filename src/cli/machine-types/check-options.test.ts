import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { checkOptions, findTargetWarning, findTargetError } from '#cli/machine-types/check-options.ts';
import type { OfferedType } from '#cli/machine-types/supported-types.ts';

const offered: OfferedType[] = [
  { name: 'pc-q35-6.2', aliases: [], deprecated: true, nodes: ['a'] },
  { name: 'pc-q35-7.2', aliases: ['q35'], deprecated: false, nodes: ['a'] },
];
const configuration = configurationOf(undefined);

const targets: Record<string, { target: string; known?: OfferedType[]; want: RegExp | undefined }> = {
  'accepts an offered type': { target: 'pc-q35-7.2', want: undefined },
  'accepts an alias': { target: 'q35', want: undefined },
  'refuses a type that is not allowed': {
    target: 'pc-i440fx-7.2',
    want: /^the KubeVirt object allows only q35\*, pc-q35\*$/,
  },
  'refuses a type that no node offers': { target: 'pc-q35-9.9', want: /^no node offers it; see / },
  'accepts any allowed type if no node reports types': { target: 'pc-q35-9.9', known: [], want: undefined },
};
for (const [title, { target, known = offered, want }] of Object.entries(targets)) {
  test(title, () => {
    const error = findTargetError(target, configuration, known);
    if (want === undefined) assert.equal(error, undefined);
    else assert.match(error ?? '', want);
  });
}

const warnings: Record<string, { target?: string; machineType?: string; want: RegExp | undefined }> = {
  'no default that is offered': { want: undefined },
  'a default that no node offers': {
    machineType: 'pc-q35-rhel9.2.0',
    want: /^no node offers the machine type "pc-q35-rhel9\.2\.0", the default of the KubeVirt object, .*; choose another with --target-machine-type/,
  },
  'no offered target, regardless of the default': {
    target: 'pc-q35-7.2',
    machineType: 'pc-q35-rhel9.2.0',
    want: undefined,
  },
  'a deprecated target': { target: 'pc-q35-6.2', want: /^the machine type "pc-q35-6\.2" is deprecated$/ },
};
for (const [title, { target, machineType, want }] of Object.entries(warnings)) {
  test(`warns about ${title}`, () => {
    const configured = configurationOf({ spec: { configuration: machineType === undefined ? {} : { machineType } } });
    const warning = findTargetWarning(target, configured, offered);
    if (want === undefined) assert.equal(warning, undefined);
    else assert.match(warning ?? '', want);
  });
}

const named: Record<string, { name: string; namespace?: string; want?: RegExp }> = {
  'accepts a VM that exists': { name: 'db' },
  'refuses a VM that does not exist': {
    name: 'nosuch',
    want: /^Cannot select VM nosuch: there is no such VM in any namespace; list the VMs with kubectl get vm -A$/,
  },
  'suggests a VM with a similar name': {
    name: 'dbb',
    namespace: 'lab',
    want: /^Cannot select VM dbb: there is no such VM in namespace "lab"; did you mean "db"\?$/,
  },
};
for (const [title, { name, namespace, want }] of Object.entries(named)) {
  test(title, async () => {
    const get = async (path: string) => ({
      metadata: {},
      items: path.includes('virtualmachines') ? [{ metadata: { name: 'db' } }] : [],
    });
    const options = {
      glob: '*',
      name,
      restartNow: false,
      maxRestarts: 1,
      maxFailures: 1,
      ...(namespace && { namespace }),
    };
    const checking = checkOptions({ get }, options, configuration, () => {});
    if (want === undefined) assert.deepEqual(await checking, []);
    else await assert.rejects(checking, { name: 'CommandError', message: want });
  });
}

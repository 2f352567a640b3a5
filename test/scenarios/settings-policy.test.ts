/** The KubeVirt object is validated by its schema and a policy alone: no process of ours takes part. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { matchesAny, parseGlob } from '#api/validation/glob.ts';
import { isMachineTypeName } from '#api/validation/spec/machine.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { settingsPolicy } from '#operator/objects/settings-policy.ts';
import { createSeededRandom } from '#test/support/seeded-random.ts';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const SYSTEM = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts';
const DENIED = "ValidatingAdmissionPolicy 'selfsame-settings' with binding 'selfsame-settings' denied request: ";

let api: TestApi;
before(async () => {
  api = await startTestApi();
  for (const name of ['selfsame-system', 'golden']) {
    await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  }
  const [policy, binding] = settingsPolicy.map(({ object }) => object);
  await api.ok('POST', `${ADMISSION}/validatingadmissionpolicies`, { body: policy });
  await api.ok('POST', `${ADMISSION}/validatingadmissionpolicybindings`, { body: binding });
  const kubevirts = definitions.find(({ object }) => object.metadata.name === 'kubevirts.kubevirt.io');
  await api.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: kubevirts?.object });
  await api.settle();
});
after(() => api.stop());

const aKubeVirt = (spec: unknown, name = 'kubevirt'): Loose => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'KubeVirt',
  metadata: { name },
  spec,
});
const configurationSpec = (configuration: Loose): Loose => ({ configuration });
const dryCreate = (spec: unknown, path = SYSTEM, name = 'kubevirt'): Promise<TestResponse> =>
  api.call('POST', `${path}?dryRun=All`, { body: aKubeVirt(spec, name) });

function assertRefused({ status, body, text }: TestResponse, want: string): void {
  assert.equal(status, 422, text);
  assert.ok(body.message.includes(DENIED), body.message);
  assert.equal(body.message.slice(body.message.indexOf(DENIED) + DENIED.length), want);
}

const AMD64 = 'spec.configuration.architectureConfiguration.amd64';
const MIGRATIONS = 'spec.configuration.migrations';
const GRAMMAR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const unsupported = (field: string, type: string, allowed: string) =>
  `${field}: Invalid value: "${type}": ${field} is not supported: ${type} (allowed values: [${allowed}])`;

const cases: Record<string, { spec: unknown; want?: string }> = {
  nothing: { spec: undefined },
  'an empty configuration': { spec: configurationSpec({}) },
  'invalid globs': {
    spec: configurationSpec({
      emulatedMachines: ['q35*', '[--'],
      architectureConfiguration: { amd64: { emulatedMachines: ['['] } },
      directLuns: ['3600*', '[^]'],
    }),
    want: [
      'spec.configuration.emulatedMachines[1]: Invalid value: "[--": syntax error in pattern',
      `${AMD64}.emulatedMachines[0]: Invalid value: "[": syntax error in pattern`,
      'spec.configuration.directLuns[1]: Invalid value: "[^]": syntax error in pattern',
    ].join(', '),
  },
  'a default machine type that VMs may not have': {
    spec: configurationSpec({ architectureConfiguration: { amd64: { machineType: 'pc' } } }),
    want: unsupported(`${AMD64}.machineType`, 'pc', 'q35* pc-q35*'),
  },
  'a default machine type with an invalid name': {
    spec: configurationSpec({ machineType: 'q35 x', emulatedMachines: ['*'] }),
    want: unsupported('spec.configuration.machineType', 'q35 x', '*'),
  },
  'machine types that exclude the implicit default': { spec: configurationSpec({ emulatedMachines: ['pc-q35-*'] }) },
  'no machine types, and an implicit default': { spec: configurationSpec({ emulatedMachines: [] }) },
  'machine types that exclude the explicit default': {
    spec: configurationSpec({ machineType: 'q35', emulatedMachines: ['pc-q35-*'] }),
    want: unsupported('spec.configuration.machineType', 'q35', 'pc-q35-*'),
  },
  'a deprecated default that takes precedence': {
    spec: configurationSpec({ machineType: 'q35', architectureConfiguration: { amd64: { machineType: 'pc' } } }),
  },
  'machine types with their own default': {
    spec: configurationSpec({ machineType: 'pc-q35-8.2', emulatedMachines: ['pc-q35-*'] }),
  },
  'machine types by a character class': {
    spec: configurationSpec({ machineType: 'pc-q35-8.2', emulatedMachines: ['pc-q35-[^0-7].[0-9]'] }),
  },
  'a setting that Selfsame does not support': {
    spec: configurationSpec({ network: {} }),
    want: 'spec.configuration.network: Forbidden: is not supported yet',
  },
  'a setting that does not exist': { spec: { hurry: 1 }, want: 'spec.hurry: Forbidden: unknown field' },
  'a setting that does not exist, without a value': { spec: { hurry: null } },
  'an unknown field of an item': {
    spec: configurationSpec({
      specialManagedDevices: [
        { type: 'a', device: 'b' },
        { type: 'a', device: 'c', bus: 'd' },
      ],
    }),
    want: 'spec.configuration.specialManagedDevices[1].bus: Forbidden: unknown field',
  },
  'known fields of items': { spec: configurationSpec({ specialManagedDevices: [{ type: 'a', device: 'b' }] }) },
  "an unknown field of the guest's manufacturer": {
    spec: configurationSpec({ smbios: { product: 'x', colour: 'red' } }),
    want: 'spec.configuration.smbios.colour: Forbidden: unknown field',
  },
  'migrations with limits': {
    spec: configurationSpec({
      evictionStrategy: 'LiveMigrate',
      migrations: { parallelMigrationsPerCluster: 7, bandwidthPerMigration: '64Mi', allowAutoConverge: true },
    }),
  },
  'migrations without a bandwidth limit': { spec: configurationSpec({ migrations: { bandwidthPerMigration: 0 } }) },
  'migrations with a negative bandwidth': {
    spec: configurationSpec({ migrations: { bandwidthPerMigration: '-1Mi' } }),
    want: `${MIGRATIONS}.bandwidthPerMigration: Invalid value: "-1Mi": must be greater than or equal to 0`,
  },
  'migrations with a negative number as bandwidth': {
    spec: configurationSpec({ migrations: { bandwidthPerMigration: -1 } }),
    want: `${MIGRATIONS}.bandwidthPerMigration: Invalid value: -1: must be greater than or equal to 0`,
  },
  'migrations with an invalid bandwidth': {
    spec: configurationSpec({ migrations: { bandwidthPerMigration: 'fast' } }),
    want: `${MIGRATIONS}.bandwidthPerMigration: Invalid value: "fast": ${GRAMMAR}`,
  },
  'migration settings that Selfsame does not support': {
    spec: configurationSpec({ migrations: { allowPostCopy: true, network: 'fast', hurry: 1 } }),
    want: [
      `${MIGRATIONS}.allowPostCopy: Forbidden: is not supported yet`,
      `${MIGRATIONS}.network: Forbidden: is not supported yet`,
      `${MIGRATIONS}.hurry: Forbidden: unknown field`,
    ].join(', '),
  },
};

for (const [name, { spec, want }] of Object.entries(cases)) {
  test(`${want === undefined ? 'allows' : 'refuses'} ${name}`, async () => {
    const answer = await dryCreate(spec);
    if (want === undefined) assert.equal(answer.status, 201, answer.text);
    else assertRefused(answer, want);
  });
}

test('refuses a second object, whatever its name and namespace', async () => {
  const want = 'metadata.name: Forbidden: only one KubeVirt object is allowed, and it exists: selfsame-system/kubevirt';
  assertRefused(await dryCreate({}, SYSTEM, 'another'), want);
  assertRefused(await dryCreate({}, SYSTEM.replace('selfsame-system', 'golden')), want);
});

test('existing invalid values do not prevent other changes', async () => {
  const binding = `${ADMISSION}/validatingadmissionpolicybindings/selfsame-settings`;
  const actions = (action: string) => ({ body: { spec: { validationActions: [action] } } });
  await api.ok('PATCH', binding, actions('Warn'));
  const wrong = {
    machineType: 'pc',
    emulatedMachines: ['q35', '['],
    hurry: 1,
    specialManagedDevices: [{ type: 'a', device: 'b', bus: 'c' }],
    migrations: { bandwidthPerMigration: '-1' },
  };
  await api.ok('POST', SYSTEM, { body: aKubeVirt(configurationSpec(wrong)) });
  await api.ok('PATCH', binding, actions('Deny'));
  const edit = (configuration: Loose) =>
    api.call('PATCH', `${SYSTEM}/kubevirt`, { body: { spec: configurationSpec(configuration) } });
  assert.equal((await edit({ evictionStrategy: 'LiveMigrate' })).status, 200);
  assertRefused(await edit({ hurry: 1, slow: 2 }), 'spec.configuration.slow: Forbidden: unknown field');
  assertRefused(await edit({ machineType: 'pc-2' }), unsupported('spec.configuration.machineType', 'pc-2', 'q35 ['));
  assertRefused(
    await edit({ migrations: { bandwidthPerMigration: '-2' } }),
    `${MIGRATIONS}.bandwidthPerMigration: Invalid value: "-2": must be greater than or equal to 0`,
  );
  await api.ok('DELETE', `${SYSTEM}/kubevirt`);
});

test('the policy interprets globs and machine types like the admission of VMs', async (t) => {
  const random = createSeededRandom(t);
  const randomText = (letters: string, maxLength: number) =>
    Array.from({ length: random.between(1, maxLength) }, () => random.pick([...letters])).join('');
  for (let round = 0; round < 40; round++) {
    const globs = [...new Set(Array.from({ length: 25 }, () => randomText('aq5.*?[]^-\\', 8)))];
    const malformed = globs.filter((glob) => parseGlob(glob) === undefined);
    const want = malformed.map((glob) => {
      const at = `spec.configuration.emulatedMachines[${globs.indexOf(glob)}]`;
      return `${at}: Invalid value: "${glob}": syntax error in pattern`;
    });
    const answer = await dryCreate(configurationSpec({ emulatedMachines: globs }));
    if (want.length === 0) assert.equal(answer.status, 201, answer.text);
    else assertRefused(answer, want.join(', '));
  }
  for (let round = 0; round < 150; round++) {
    const [type, globs] = [
      randomText('aq5._-', 4),
      [randomText('aq5.*?', 4), `${randomText('aq5*', 2)}[^${randomText('aq5.', 2)}]*`],
    ];
    const isAllowed = isMachineTypeName(type) && matchesAny(globs, type);
    const answer = await dryCreate(configurationSpec({ machineType: type, emulatedMachines: globs }));
    assert.equal(answer.status, isAllowed ? 201 : 422, `${type} ${globs.join(' ')}: ${answer.text}`);
  }
});

test('the policy has no type errors', async () => {
  const { status } = await api.ok('GET', `${ADMISSION}/validatingadmissionpolicies/selfsame-settings`);
  assert.deepEqual(status.typeChecking, {});
});

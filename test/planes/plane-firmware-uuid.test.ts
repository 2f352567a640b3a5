/**
 * The identity of a VM is stable on the whole plane: every row of the scenario table of seed 000 (docs/seeds.md)
 * and the cases of KubeVirt's own tests, U1 to U20, that apply here. Intended differences:
 *   U1: the machine type is not filled in at creation. U15: restore to another name renews a uuid that is in use.
 *   U16: there is no clone kind. U17: see row 3. U20: removal is refused (row 10).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import type { Loose } from '#test/support/test-api.ts';
import { storePastAdmission, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { aVm, KERNEL, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const CHOSEN = '7e5a6a0e-0d4d-4f35-9b3e-0a4b1f1d7a11';
const OTHER = '0b1c6a52-9a53-4c53-8b44-3c8d7e1c2f33';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const AT = ['spec', 'template', 'spec', 'domain', 'firmware'];

const firmwareOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.get('VirtualMachine', vm)).spec.template.spec.domain.firmware ?? {};
const conditionOf = async (plane: VmPlane, vm: string, type: string): Promise<Loose> =>
  (await plane.get('VirtualMachine', vm)).status?.conditions?.find((condition: Loose) => condition.type === type);
const withFirmware = (name: string, spec: Loose, firmware: Loose): Loose =>
  aVm(name, spec, { domain: { firmware: { kernelBoot: KERNEL, ...firmware } } });
const guestFirmware = (plane: VmPlane, vm: string): Loose[] =>
  plane.startsOf(vm).map(({ machine }) => machine.firmware);
const uuidPatch = (name: string, firmware: Loose): Loose => ({
  kind: 'VirtualMachine',
  metadata: { name },
  spec: { template: { spec: { domain: { firmware } } } },
});
const changesOf = async (plane: VmPlane, vm: string): Promise<string[]> =>
  (await plane.eventsOf(vm)).filter((event) => /^(Legacy|Firmware)/.test(event));

test('the firmware uuid of VMs', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('row 1: a stopped old VM gets its legacy uuid', async () => {
    const { domain } = aVm('old-stopped', { runStrategy: 'Halted' }).spec.template.spec;
    await storePastAdmission(plane, withoutFirmwareUuid(aVm('old-stopped', { runStrategy: 'Halted' })));
    await plane.settle();
    const { generation } = (await plane.get('VirtualMachine', 'old-stopped')).metadata;
    // U6: other firmware fields are kept, and only the uuid is added.
    assert.deepEqual(await firmwareOf(plane, 'old-stopped'), { ...domain.firmware, uuid: legacyUuid('old-stopped') });
    await plane.advance(60_000);
    assert.equal(
      (await plane.get('VirtualMachine', 'old-stopped')).metadata.generation,
      generation,
      'it is written once',
    );
    assert.equal((await changesOf(plane, 'old-stopped')).length, 1);
    await plane.runVerb('start', 'old-stopped');
    assert.equal(guestFirmware(plane, 'old-stopped')[0].uuid, legacyUuid('old-stopped'));
  });

  await t.test('row 2: a stopped VM that has one is left alone', async () => {
    await storePastAdmission(plane, withFirmware('has-one', { runStrategy: 'Halted' }, { uuid: CHOSEN }));
    await plane.settle();
    assert.deepEqual(await firmwareOf(plane, 'has-one'), { kernelBoot: KERNEL, uuid: CHOSEN });
    assert.deepEqual(await changesOf(plane, 'has-one'), []);
  });

  await t.test(
    'row 3: a running old VM gets its legacy uuid, without a restart and without RestartRequired',
    async () => {
      await plane.apply(withFirmware('old-running', { runStrategy: 'Always' }, { uuid: legacyUuid('old-running') }));
      const before = await plane.get('VirtualMachineInstance', 'old-running');
      await storePastAdmission(plane, withoutFirmwareUuid(await plane.get('VirtualMachine', 'old-running')));
      await plane.settle();
      assert.equal((await firmwareOf(plane, 'old-running')).uuid, legacyUuid('old-running'));
      assert.equal((await plane.get('VirtualMachineInstance', 'old-running')).metadata.uid, before.metadata.uid);
      assert.equal(await conditionOf(plane, 'old-running', 'RestartRequired'), undefined);
      assert.equal(plane.startsOf('old-running').length, 1);
      await plane.runVerb('restart', 'old-running');
      assert.deepEqual(guestFirmware(plane, 'old-running')[1], guestFirmware(plane, 'old-running')[0]);
    },
  );

  await t.test('row 5: a new VM without one gets a random one, and a serial', async () => {
    await plane.apply(aVm('new-stopped', { runStrategy: 'Halted' }));
    const firmware = await firmwareOf(plane, 'new-stopped');
    assert.match(firmware.uuid, V4);
    assert.ok(firmware.serial !== undefined && firmware.serial !== firmware.uuid);
    assert.notEqual(firmware.uuid, legacyUuid('new-stopped'));
  });

  await t.test('row 6: a new VM that brings one keeps it', async () => {
    await plane.apply(withFirmware('new-with', { runStrategy: 'Halted' }, { uuid: OTHER.toUpperCase() }));
    const { uuid, serial } = await firmwareOf(plane, 'new-with');
    assert.equal(uuid, OTHER.toUpperCase());
    assert.match(serial, V4);
  });

  await t.test('row 7: a new running VM has the uuid that it was created with', async () => {
    const created = await plane.apply(aVm('new-running', { runStrategy: 'Always' }));
    const { uuid, serial } = created.spec.template.spec.domain.firmware;
    assert.deepEqual([(await firmwareOf(plane, 'new-running')).uuid], [uuid]);
    assert.deepEqual(
      guestFirmware(plane, 'new-running').map((seen) => [seen.uuid, seen.serial]),
      [[uuid, serial]],
    );
    assert.deepEqual(await changesOf(plane, 'new-running'), []);
  });

  await t.test('row 9: changing it is allowed, requires a restart, and persists', async () => {
    await plane.apply(withFirmware('changing', { runStrategy: 'Always' }, { uuid: CHOSEN }));
    await plane.apply(uuidPatch('changing', { uuid: '11111111-2222-4333-8444-555555555555' }));
    assert.equal((await conditionOf(plane, 'changing', 'RestartRequired')).status, 'True');
    assert.equal(guestFirmware(plane, 'changing').length, 1);
    await plane.runVerb('restart', 'changing');
    assert.equal(await conditionOf(plane, 'changing', 'RestartRequired'), undefined);
    assert.equal(guestFirmware(plane, 'changing')[1].uuid, '11111111-2222-4333-8444-555555555555');
  });

  await t.test('row 10: removing it is refused on every route, and nothing changes', async () => {
    await plane.apply(aVm('keeps', { runStrategy: 'Halted' }));
    const before = await plane.get('VirtualMachine', 'keeps');
    const pointer = (...names: string[]) => `/${[...AT, ...names].join('/')}`;
    const json = { contentType: 'application/json-patch+json' };
    const merge = { contentType: 'application/merge-patch+json' };
    const routes: Record<string, () => Promise<Loose>> = {
      'replace with an empty string': () => {
        const emptied = structuredClone(before);
        emptied.spec.template.spec.domain.firmware.uuid = '';
        return plane.call('PUT', `${VMS}/keeps`, { body: emptied });
      },
      'merge patch to null': () =>
        plane.call('PATCH', `${VMS}/keeps`, { body: uuidPatch('keeps', { uuid: null }), ...merge }),
      'merge patch of the serial': () =>
        plane.call('PATCH', `${VMS}/keeps`, { body: uuidPatch('keeps', { serial: null }), ...merge }),
      'merge patch of firmware to null': () =>
        plane.call('PATCH', `${VMS}/keeps`, { body: uuidPatch('keeps', null), ...merge }),
      'JSON patch': () =>
        plane.call('PATCH', `${VMS}/keeps`, { body: [{ op: 'remove', path: pointer('uuid') }], ...json }),
      'JSON patch of firmware': () =>
        plane.call('PATCH', `${VMS}/keeps`, { body: [{ op: 'remove', path: pointer() }], ...json }),
    };
    for (const [route, send] of Object.entries(routes)) {
      const { status, body } = await send();
      assert.equal(status, 422, `${route}: ${JSON.stringify(body)}`);
      assert.match(body.message, /cannot be removed/, route);
      assert.deepEqual(await plane.get('VirtualMachine', 'keeps'), before, route);
    }
  });

  await t.test('replacing the VM by the manifest that created it keeps uuid, serial and machine type', async () => {
    const manifest = aVm('replaced', { runStrategy: 'Always' });
    await plane.apply(manifest);
    const before = await plane.get('VirtualMachine', 'replaced');
    for (let time = 0; time < 3; time++) {
      const { resourceVersion } = (await plane.get('VirtualMachine', 'replaced')).metadata;
      const body = { ...manifest, metadata: { ...manifest.metadata, resourceVersion } };
      const { status, warnings } = await plane.call('PUT', `${VMS}/replaced`, { body });
      assert.equal(status, 200);
      assert.match(
        warnings.join('; '),
        /^the firmware uuid and serial .* were kept; the machine type .* was kept: q35/,
      );
      await plane.settle();
    }
    const after = await plane.get('VirtualMachine', 'replaced');
    assert.deepEqual(after.spec, before.spec);
    assert.equal(after.metadata.generation, before.metadata.generation);
    assert.equal(await conditionOf(plane, 'replaced', 'RestartRequired'), undefined);
    await plane.runVerb('restart', 'replaced');
    assert.deepEqual(guestFirmware(plane, 'replaced')[1], guestFirmware(plane, 'replaced')[0]);
  });

  await t.test('repeated apply of the manifest without a uuid keeps it', async () => {
    await plane.apply(aVm('gitops', { runStrategy: 'Halted' }));
    const before = await firmwareOf(plane, 'gitops');
    for (let time = 0; time < 3; time++) await plane.apply(aVm('gitops', { runStrategy: 'Halted' }));
    assert.deepEqual(await firmwareOf(plane, 'gitops'), before);
  });

  await t.test('rows 11 and 12: a stand-alone instance keeps its own, or gets a random one', async () => {
    const { template } = aVm('x').spec;
    const instance = (name: string, firmware: Loose): Loose => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name },
      spec: { ...template.spec, domain: { ...template.spec.domain, firmware: { kernelBoot: KERNEL, ...firmware } } },
    });
    await plane.apply(instance('alone-with', { uuid: CHOSEN }));
    await plane.apply(instance('alone', {}));
    assert.equal(guestFirmware(plane, 'alone-with')[0].uuid, CHOSEN);
    assert.match(guestFirmware(plane, 'alone')[0].uuid, V4);
    assert.notEqual(guestFirmware(plane, 'alone')[0].uuid, legacyUuid('alone'));
  });

  await t.test('an invalid uuid is refused, and the message describes a valid one', async () => {
    const { status, body } = await plane.call('POST', VMS, {
      body: withFirmware('malformed', { runStrategy: 'Halted' }, { uuid: 'not-a-uuid' }),
    });
    assert.equal(status, 422);
    assert.match(body.message, /not-a-uuid/);
    assert.match(body.message, /[0-9a-f]{8}-[0-9a-f]{4}-/);
  });

  await t.test('a VM that lost its uuid in the store gets that one back, not the legacy one', async () => {
    await plane.apply(aVm('lost', { runStrategy: 'Always' }));
    const { uuid, serial } = await firmwareOf(plane, 'lost');
    await storePastAdmission(plane, withoutFirmwareUuid(await plane.get('VirtualMachine', 'lost')));
    await plane.settle();
    const after = await firmwareOf(plane, 'lost');
    assert.deepEqual([after.uuid, after.serial], [uuid, serial]);
    assert.equal(await conditionOf(plane, 'lost', 'RestartRequired'), undefined);
  });

  await t.test('U18: the same name in two namespaces is two machines', async () => {
    await plane.call('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'two' } },
    });
    const other = '/apis/kubevirt.io/v1/namespaces/two/virtualmachines';
    await plane.apply(aVm('twin', { runStrategy: 'Halted' }));
    const { status, body } = await plane.call('POST', other, { body: aVm('twin', { runStrategy: 'Halted' }) });
    assert.equal(status, 201, JSON.stringify(body));
    const { uuid, serial } = body.spec.template.spec.domain.firmware;
    const here = await firmwareOf(plane, 'twin');
    assert.notEqual(here.uuid, uuid);
    assert.notEqual(here.serial, serial);
  });

  await t.test('VMs with the same uuid report it until one of them has another', async () => {
    const shared = 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee';
    await plane.apply(withFirmware('first', { runStrategy: 'Halted' }, { uuid: shared }));
    const { status, warnings } = await plane.call('POST', VMS, {
      body: withFirmware('second', { runStrategy: 'Halted' }, { uuid: shared.toUpperCase() }),
    });
    await plane.settle();
    assert.equal(status, 201);
    assert.match(warnings.join(), /is also that of VirtualMachine "first"/);
    const [one, two] = [
      await conditionOf(plane, 'first', 'DuplicateFirmwareUUID'),
      await conditionOf(plane, 'second', 'DuplicateFirmwareUUID'),
    ];
    assert.deepEqual([one?.status, two?.status], ['True', 'True']);
    assert.match(one.message, /VirtualMachine "second"/);
    assert.match(two.message, /VirtualMachine "first"/);
    await plane.apply(uuidPatch('second', { uuid: 'aaaaaaaa-bbbb-4ccc-8ddd-ffffffffffff' }));
    assert.equal(await conditionOf(plane, 'first', 'DuplicateFirmwareUUID'), undefined);
    assert.equal(await conditionOf(plane, 'second', 'DuplicateFirmwareUUID'), undefined);
  });

  await t.test('uses of the legacy rule are counted', async () => {
    const { text } = await plane.call('GET', '/metrics');
    assert.match(text, /selfsame_legacy_firmware_uuid_total\{use="vm"\} \d+/);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

const STATE = { directory: '/volumes/pvc-1/state' };
const TPM: DomainSpec = { devices: { tpm: { persistent: true } } };
const EFI: DomainSpec = { firmware: { bootloader: { efi: { secureBoot: false, persistent: true } } } };

interface Case {
  readonly domain: DomainSpec;
  /** The parts of the definition that are marked as persistent; `state` is the directory. */
  readonly want: readonly ('state' | 'tpm' | 'efi')[];
}

const cases: Record<string, Case> = {
  'keeps a persistent TPM': { domain: TPM, want: ['state', 'tpm'] },
  'keeps persistent EFI variables': { domain: EFI, want: ['state', 'efi'] },
  'keeps both in one directory': { domain: { ...TPM, ...EFI }, want: ['state', 'tpm', 'efi'] },
  'keeps EFI variables without keeping the TPM': {
    domain: { ...EFI, devices: { tpm: {} } },
    want: ['state', 'efi'],
  },
  'keeps nothing for a disabled TPM': {
    domain: { devices: { tpm: { enabled: false, persistent: true } } },
    want: [],
  },
  'keeps nothing that the spec does not ask for, even if there is a directory': {
    domain: { devices: { tpm: { persistent: false } }, firmware: { bootloader: { efi: { secureBoot: false } } } },
    want: [],
  },
};

for (const [name, { domain, want }] of Object.entries(cases)) {
  test(name, () => {
    const { definition } = defineDomain(anInput(aVmi(domain), { state: STATE }));
    assert.ok(definition !== undefined);
    const { devices, firmware, state } = definition;
    const found = [
      ...(state === undefined ? [] : ['state']),
      ...(devices.some((device) => device.type === 'tpm' && device.persistent === true) ? ['tpm'] : []),
      ...(firmware.loader.type === 'efi' && firmware.loader.persistent === true ? ['efi'] : []),
    ];
    assert.deepEqual(found, want);
    assert.deepEqual(state, want.length === 0 ? undefined : STATE);
  });
}

test('refuses each persistent part if there is no directory', () => {
  const { problems } = defineDomain(anInput(aVmi({ ...TPM, ...EFI })));
  assert.deepEqual(
    problems?.map(({ field }) => field),
    ['spec.domain.devices.tpm.persistent', 'spec.domain.firmware.bootloader.efi.persistent'],
  );
});

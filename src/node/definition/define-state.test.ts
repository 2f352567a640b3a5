import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Domain } from '#api/domain/domain.ts';
import { defineDomain } from './define-domain.ts';
import { anInput, aVmi } from './testing/a-vmi.ts';

const STATE = { directory: '/volumes/pvc-1/state' };
const TPM: Domain = { devices: { tpm: { persistent: true } } };
const EFI: Domain = { firmware: { bootloader: { efi: { secureBoot: false, persistent: true } } } };

interface Case {
  readonly domain: Domain;
  /** Whether the guest has the directory, and which of its parts say that they outlive it. */
  readonly want: readonly ('state' | 'tpm' | 'efi')[];
}

const cases: Record<string, Case> = {
  'a persistent TPM is kept': { domain: TPM, want: ['state', 'tpm'] },
  'persistent EFI variables are kept': { domain: EFI, want: ['state', 'efi'] },
  'both are kept in one place': { domain: { ...TPM, ...EFI }, want: ['state', 'tpm', 'efi'] },
  'one says nothing of the other': {
    domain: { ...EFI, devices: { tpm: {} } },
    want: ['state', 'efi'],
  },
  'a TPM that is switched off keeps nothing': {
    domain: { devices: { tpm: { enabled: false, persistent: true } } },
    want: [],
  },
  'what is not asked for is not kept, also where there is a place': {
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

test('what is to outlive a guest without a place for it is a problem each', () => {
  const { problems } = defineDomain(anInput(aVmi({ ...TPM, ...EFI })));
  assert.deepEqual(
    problems?.map(({ field }) => field),
    ['spec.domain.devices.tpm.persistent', 'spec.domain.firmware.bootloader.efi.persistent'],
  );
});

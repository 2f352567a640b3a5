/**
 * Compares whole command lines with golden files. Guests remember their hardware, so a change here changes existing
 * machines. The new text is printed if it differs; store it only if the change is intended and no device of a running
 * VM moves.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { defineDomain } from '#node/definition/define-domain.ts';
import { inputOf, SPECS } from '#node/hypervisor/qemu/arguments/testing/golden-specs.ts';
import { qemuArguments } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';

const DIR = join(import.meta.dirname, 'golden');

for (const [name, spec] of Object.entries(SPECS)) {
  test(`command line: ${name}`, () => {
    const { definition, problems } = defineDomain(inputOf(spec));
    assert.ok(definition !== undefined, JSON.stringify(problems));
    const isEfi = definition.firmware.loader.type === 'efi';
    const args = qemuArguments(definition, {
      accelerator: spec.input?.capabilities?.accelerator === 'kvm' ? 'kvm' : 'tcg',
      qmpSocket: 'qmp.sock',
      serialSocket: 'serial.sock',
      displaySocket: 'vnc.sock',
      agentSocket: 'agent.sock',
      redirectionSocket: (deviceId: string) => `${deviceId}.sock`,
      nowMs: () => Date.UTC(2026, 0, 1),
      tpmSocket: 'tpm.sock',
      ...(isEfi && { nvram: 'nvram.fd', ovmfCode: '/usr/share/OVMF/OVMF_CODE_4M.fd' }),
      pathOf: (absolute) => absolute,
      tapOf: (deviceId) => `tap-${deviceId}`,
    });
    const text = textOf(args);
    assert.ok(text === readGolden(name), `golden/${name}.txt differs from the present command line:\n${text}`);
  });
}

test('there is exactly one golden file per guest', () => {
  const files = readdirSync(DIR).filter((file) => file.endsWith('.txt'));
  assert.deepEqual(
    files.sort(),
    Object.keys(SPECS)
      .map((name) => `${name}.txt`)
      .sort(),
  );
  assert.ok(files.length >= 30);
});

/** Formats the arguments with one option and its value per line. */
function textOf(args: readonly string[]): string {
  const lines: string[] = [];
  for (const arg of args) {
    if (arg.startsWith('-')) lines.push(arg);
    else lines.push(`${lines.pop() ?? ''} ${arg}`);
  }
  return `${lines.join('\n')}\n`;
}

function readGolden(name: string): string {
  try {
    return readFileSync(join(DIR, `${name}.txt`), 'utf8');
  } catch {
    return '';
  }
}

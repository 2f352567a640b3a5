/**
 * Devices without addresses get those that libvirt assigns, tested against libvirt itself: each domain is read once as it
 * was written, without addresses, and once as libvirt defines it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { assertLibvirtLayout, placesOf } from '#test/libvirt/compare.ts';
import { balloon, domainOf, MIXES, nic, vd, video, type Mix } from '#test/libvirt/mixes.ts';
import { randomMix } from '#test/libvirt/random-mix.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { openLibvirt, libvirtSkipReason, type Libvirt } from '#test/support/libvirt.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';

const skip = libvirtSkipReason();
const RANDOM_MIXES = FULL_RUN ? 600 : 150;

test('libvirt has the same layout', { skip }, async (t) => {
  const libvirt = openLibvirt(t);
  const random = createSeededRandom(t, { fixedSeed: 23 });
  await t.test('of every mix of hardware', () => testEveryMix(libvirt));
  await t.test('of random hardware in a random order', () => testRandomMixes(libvirt, random));
  await t.test('of a full i440fx bus, except for a bridge that hosts of oVirt 3.0 did not have', () =>
    testFullBus(libvirt),
  );
});

/** Compares each mix without addresses, and once more with additional devices after libvirt has assigned addresses. */
async function testEveryMix(libvirt: Libvirt): Promise<void> {
  const domains = [...MIXES.values()].map(domainOf);
  const defined = await libvirt.define(domains);
  const grown = defined.map(withMoreDevices);
  const grownDefined = await libvirt.define(grown);
  assert.ok(MIXES.size >= 60);
  for (const [i, name] of [...MIXES.keys()].entries()) {
    compare(name, domains[i] ?? '', defined[i] ?? '');
    const later = grownDefined[i] ?? '';
    // The bus is full: see testFullBus.
    if (!later.includes("model='pci-bridge'")) compare(`${name}, and more later`, grown[i] ?? '', later);
  }
}

async function testRandomMixes(libvirt: Libvirt, random: SeededRandom): Promise<void> {
  const mixes = Array.from({ length: RANDOM_MIXES }, (_, i) => randomMix(random, i % 2 === 0 ? 'i440fx' : 'q35'));
  const domains = mixes.map(domainOf);
  const defined = await libvirt.define(domains);
  for (const [i, domain] of domains.entries()) compare(`mix ${i}`, domain, defined[i] ?? '');
}

function compare(name: string, domain: string, defined: string): void {
  try {
    assertLibvirtLayout(domain, defined);
  } catch (cause) {
    throw new Error(`${name} is not laid out as libvirt has it:\n${domain}`, { cause });
  }
}

/** Returns the domain with its addresses and two more devices without. */
function withMoreDevices(defined: string): string {
  return defined.replace('</devices>', `${vd(60)}${nic(0xf0)}</devices>`);
}

async function testFullBus(libvirt: Libvirt): Promise<void> {
  const full: Mix = {
    chipset: 'i440fx',
    devices: [video('vga'), balloon('none'), ...Array.from({ length: 29 }, (_, i) => vd(i))],
  };
  const [defined = ''] = await libvirt.define([domainOf(full)]);
  assert.match(defined, /model='pci-bridge'/);
  const places = placesOf(readLibvirt(domainOf(full)).rows, []);
  assert.equal(places['disk-vda'], '0000:00:03.0');
  assert.equal(places['disk-vdac'], '0000:00:1f.0');
}

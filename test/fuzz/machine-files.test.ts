/**
 * Descriptions of machines that somebody imports: OVF and libvirt XML with a damaged structure.
 * src/formats/hostile.property.test.ts changes their values.
 */
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { libvirtDomain } from '#formats/testing/libvirt-domain.ts';
import { ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { PLAIN_OVF } from '#formats/testing/plain-ovf.ts';
import { toManifests } from '#formats/vm/to-manifests.ts';
import { checkInputs, expectedError } from '#test/fuzz/check-inputs.ts';
import { byteMutations } from '#test/fuzz/mutations.ts';

/** Only virtctl reads these files, on the machine of the user. The limits of lib/xml bound the time. */
const MAX_TURN_MS = 1500;

type Edit = (text: string) => string;

const files: Record<string, { readonly text: string; readonly read: (text: string) => MachineDescription }> = {
  'an OVF of oVirt': { text: ovirtOvf(), read: readOvf },
  'an OVF of another product': { text: PLAIN_OVF, read: readOvf },
  'a libvirt domain': { text: libvirtDomain(), read: readLibvirt },
};

/** An element without elements of the same name in it, and its parts. */
const ELEMENT = /<([\w:]+)(?:\s[^<>]*)?(?:\/>|>(?:(?!<\/?\1[\s>])[^])*?<\/\1>)/g;
const MAX_EDITED_LENGTH = 40_000;
const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Replaces one element of the text. */
function editElement(replace: (element: string) => string): fc.Arbitrary<Edit> {
  return place.map((where) => (text) => {
    // The expression takes long for large texts.
    if (text.length > MAX_EDITED_LENGTH) return text;
    const elements = [...text.matchAll(ELEMENT)];
    const { 0: element, index } = elements[Math.floor(where * elements.length)] ?? { 0: '', index: 0 };
    return text.slice(0, index) + replace(element) + text.slice(index + element.length);
  });
}

const count = fc.constantFrom(2, 3, 30);
const number = fc.constantFrom('-1', '0', '1e99', '99999999999999999999', '4294967296', '0x10', 'NaN', '1.5', '');
const edit: fc.Arbitrary<Edit> = fc.oneof(
  editElement(() => ''),
  count.chain((times) => editElement((element) => element.repeat(times))),
  fc
    .constantFrom(5, 60, 70)
    .chain((depth) => editElement((element) => `${'<a>'.repeat(depth)}${element}${'</a>'.repeat(depth)}`)),
  editElement((element) => element.replaceAll(/>[^<>]*</g, '><')),
  editElement((element) => element.replaceAll(/\s[\w:]+="[^"]*"/g, '')),
  number.chain((value) => editElement((element) => element.replaceAll(/(?<=["'>])\d+(?=["'<])/g, value))),
  editElement((element) => `<![CDATA[${element}]]>`),
  editElement((element) => `<!--${element.replaceAll('--', '')}-->`),
  byteMutations.map((mutate) => (text: string) => mutate(Buffer.from(text)).toString('utf8')),
);

for (const [name, { text, read }] of Object.entries(files)) {
  test(`${name} with a damaged structure is read or refused in bounded time`, (t) => {
    const first = text.indexOf('>', text.indexOf('?>') + 2) + 1;
    const filled = (part: string, times: number) => (whole: string) =>
      whole.slice(0, first) + part.repeat(times) + whole.slice(first);
    const always: Edit[] = [
      filled('<a/>', 60_000),
      filled('<a>', 60),
      filled('<a b="c" d="e" f="g"/>', 25_000),
      filled('&amp;', 500_000),
      filled('<!-- -->', 60_000),
      (whole) => whole.replaceAll(ELEMENT, (element) => element.repeat(20)),
    ];
    return checkInputs(
      t,
      {
        runs: 60,
        maxTurnMs: MAX_TURN_MS,
        values: fc.array(edit, { minLength: 1, maxLength: 3 }),
        always: always.map((one) => [one]),
      },
      async (edits) => {
        const changed = edits.reduce((current, one) => one(current), text);
        await expectedError([FileFormatError], () => {
          const machine = read(changed);
          const claimNames = new Map(machine.disks.map((disk) => [disk.name, disk.name]));
          return toManifests(machine, { name: 'a', namespace: 'b', claimNames });
        });
      },
    );
  });
}

/** Builds the fields that Rock Ridge (RRIP 1.09, on SUSP 1.10) adds to directory records: real names and modes. */
import { both32 } from '#node/volumes/local/cloud-init/iso-records.ts';

type Entry = { readonly type: 'root' } | { readonly type: 'parent' } | { readonly type: 'file'; readonly name: string };

const VERSION = 1;
const EXTENSION = 'RRIP_1991A';
/** Readable by root only, because the files may contain passwords and keys. */
const FILE_MODE = 0o100400;
const DIRECTORY_MODE = 0o040555;
const DIRECTORY_LINKS = 2;

export function buildRockRidge(entry: Entry): Buffer {
  switch (entry.type) {
    case 'root':
      return Buffer.concat([sharingProtocol(), attributes(DIRECTORY_MODE, DIRECTORY_LINKS), extension()]);
    case 'parent':
      return attributes(DIRECTORY_MODE, DIRECTORY_LINKS);
    case 'file':
      return Buffer.concat([attributes(FILE_MODE, 1), field('NM', Buffer.from(`\0${entry.name}`, 'latin1'))]);
  }
}

/** Builds the field that announces the protocol. It must be the first field of the root. */
function sharingProtocol(): Buffer {
  return field('SP', Buffer.from([0xbe, 0xef, 0]));
}

function extension(): Buffer {
  return field('ER', Buffer.from([EXTENSION.length, 0, 0, VERSION, ...Buffer.from(EXTENSION)]));
}

/** Builds the field with mode, links, user and group. */
function attributes(mode: number, links: number): Buffer {
  return field('PX', Buffer.concat([both32(mode), both32(links), both32(0), both32(0)]));
}

function field(name: string, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(name), Buffer.from([4 + content.length, VERSION]), content]);
}

/**
 * A case of the CEL specification's conformance tests: reads values from protobuf's JSON, and decides whether the case
 * needs a feature that Kubernetes does not have.
 */
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { parseDuration, parseTimestamp } from '#cel/evaluate/text/time-text.ts';
import { typeNames } from '#cel/evaluate/type-of.ts';
import { DYN } from '#cel/type.ts';
import { CelFault, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

/** A value in protobuf's JSON. Exactly one field is set. */
export interface SpecValue {
  readonly nullValue?: null;
  readonly boolValue?: boolean;
  readonly int64Value?: string;
  readonly uint64Value?: string;
  readonly doubleValue?: number | string;
  readonly stringValue?: string;
  readonly bytesValue?: string;
  readonly typeValue?: string;
  readonly listValue?: { readonly values?: readonly SpecValue[] };
  readonly mapValue?: { readonly entries?: readonly { readonly key: SpecValue; readonly value: SpecValue }[] };
  readonly objectValue?: { readonly '@type': string; readonly value?: string };
}

export interface SpecCase {
  readonly name?: string;
  readonly expr: string;
  readonly container?: string;
  readonly disableCheck?: boolean;
  readonly disableMacros?: boolean;
  readonly typeEnv?: readonly { readonly name: string }[];
  readonly bindings?: Readonly<Record<string, { readonly value: SpecValue }>>;
  readonly value?: SpecValue;
  readonly typedResult?: { readonly result?: SpecValue };
  readonly checkOnly?: boolean;
  readonly evalError?: unknown;
}

const TIMES = new Set(['google.protobuf.Timestamp', 'google.protobuf.Duration']);
/** Matches the JSON of a case that needs protobuf: messages, enums, wrappers and any. */
const PROTOBUF =
  /"(?:@type|messageType)":"(?:type\.googleapis\.com\/)?([^"]+)"|"(enumValue|wrapper|wellKnown)":"(\w+)"/g;
/** Matches the names of messages in an expression. */
const PROTOBUF_NAME = /\bTestAllTypes\b|\bgoogle\.protobuf\.(?!Timestamp\b|Duration\b)\w+|\bcel\.expr\b|\bproto[23]\b/;

/** Returns why a case is excluded, or undefined if it is run. */
export function findExclusionReason(spec: SpecCase): string | undefined {
  if (spec.container !== undefined && spec.container !== '') return 'container';
  if (spec.checkOnly === true) return 'check only';
  if (PROTOBUF_NAME.test(spec.expr)) return 'protobuf';
  for (const [, type, kind, value] of JSON.stringify(spec).matchAll(PROTOBUF)) {
    const isTime = type === undefined ? kind === 'wellKnown' && value !== 'ANY' : TIMES.has(type);
    if (!isTime) return 'protobuf';
  }
  return undefined;
}

export function readSpecValue(value: SpecValue): CelValue {
  if (value.boolValue !== undefined) return value.boolValue;
  if (value.int64Value !== undefined) return BigInt(value.int64Value);
  if (value.uint64Value !== undefined) return new CelUint(BigInt(value.uint64Value));
  if (value.doubleValue !== undefined) return Number(value.doubleValue);
  if (value.stringValue !== undefined) return value.stringValue;
  if (value.bytesValue !== undefined) return new Uint8Array(Buffer.from(value.bytesValue, 'base64'));
  if (value.typeValue !== undefined) return typeNames.get(value.typeValue) ?? new CelTypeValue(value.typeValue, DYN);
  if (value.listValue !== undefined) return new ArrayList((value.listValue.values ?? []).map(readSpecValue));
  if (value.mapValue !== undefined) {
    const entries = value.mapValue.entries ?? [];
    return requireValue(EntryMap.of(entries.map((entry) => [readSpecValue(entry.key), readSpecValue(entry.value)])));
  }
  if (value.objectValue === undefined) return null;
  const { '@type': type, value: text = '' } = value.objectValue;
  return requireValue(type.endsWith('Timestamp') ? parseTimestamp(text) : parseDuration(text));
}

function requireValue(value: CelValue | CelFault | undefined): CelValue {
  if (value === undefined || value instanceof CelFault)
    throw new Error(`Cannot read value: ${value?.message ?? 'invalid time'}`);
  return value;
}

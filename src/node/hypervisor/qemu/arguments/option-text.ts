/**
 * How options are written for QEMU: `kind,key=value` with commas in values doubled, or JSON where QEMU takes it, which is
 * everywhere but in the older options. Values never become keys, whatever they contain.
 */

export type OptionValue = string | number | boolean;
export type DeviceOptions = Readonly<Record<string, OptionValue>>;
export type JsonOptions = { readonly [key: string]: OptionValue | JsonOptions };

/** `on` and `off` for booleans. */
export function optionText(kind: string, options: Readonly<Record<string, OptionValue>>): string {
  const pairs = Object.entries(options).map(([key, value]) => `${key}=${textOf(value)}`);
  return [...(kind === '' ? [] : [kind]), ...pairs].join(',');
}

function textOf(value: OptionValue): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return String(value).replaceAll(',', ',,');
}

export function deviceArguments(options: DeviceOptions): string[] {
  return ['-device', JSON.stringify(options)];
}

export function blockdevArguments(options: JsonOptions): string[] {
  return ['-blockdev', JSON.stringify(options)];
}

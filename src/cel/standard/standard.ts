/** The standard library of CEL: operators, conversions, strings, times and the macros. */
import type { Library } from '#cel/library.ts';
import { standardMacros } from '#cel/parse/macros.ts';
import { conversions } from '#cel/standard/conversions.ts';
import { operators } from '#cel/standard/operators.ts';
import { strings } from '#cel/standard/strings.ts';
import { times } from '#cel/standard/times.ts';

export const standardLibrary: Library = {
  functions: { ...operators, ...conversions, ...strings, ...times },
  macros: standardMacros,
};

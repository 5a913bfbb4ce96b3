declare module 'nspell' {
  /** A spell checker, from the two files of a Hunspell dictionary. */
  export default function nspell(aff: Buffer, dic: Buffer): { correct(word: string): boolean }
}

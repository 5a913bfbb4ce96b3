/** Who sends requests: what stands in the header `X-Merchant`, and what `scope` answers for it. */
export const MERCHANTS: Readonly<Record<string, unknown>> = {
  // Joined to a key without care, some of these meet others' keys.
  'merchant-0': 'acme',
  'merchant-1': 'acme:eu',
  'merchant-2': 'acme%3Aeu',
  'merchant-3': '{acme}',
  'merchant-4': '__proto__',
  'merchant-5': 'Zoë & Söhne ☃',
  'merchant-6': 'm'.repeat(255),
  'merchant-7': ' acme ',
  // Everybody's scope by accident: misuse, and nothing runs.
  'accident-0': undefined,
  'accident-1': 42,
  'accident-2': '',
  'accident-3': '[object Object]',
  'accident-4': 'half \ud800',
  'accident-5': ['acme'],
  // Sends what is no HTTP, and shares nothing with those whose answers are judged.
  hostile: 'hostile',
}

export const TRUE_MERCHANTS: readonly string[] = Object.keys(MERCHANTS).filter((name) => name.startsWith('merchant'))
export const ACCIDENTS: readonly string[] = Object.keys(MERCHANTS).filter((name) => name.startsWith('accident'))

/** The scope that the library must use; `null`: it must refuse. */
export function scopeOf(merchant: string): string | null {
  return merchant.startsWith('accident') ? null : (MERCHANTS[merchant] as string)
}

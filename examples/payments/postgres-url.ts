/** What to tell who gave another. */
export const POSTGRES_LIKE = 'postgres://user:password@localhost:5432/payments'

export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\/\S+$/.test(text) && URL.canParse(text)
}

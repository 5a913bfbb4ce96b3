import { onTestFinished } from 'vitest'

/** The library's warnings of this process, as they are printed, while one test runs. */
export function heardWarnings(): { readonly code: string; readonly message: string }[] {
  const heard: { readonly code: string; readonly message: string }[] = []
  const hear = (warning: Error & { readonly code?: string }) => {
    const { name, code = '', message } = warning
    if (name === 'OncePerKeyWarning') heard.push({ code, message })
  }
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  return heard
}

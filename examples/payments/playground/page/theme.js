import { existing } from './element.js'

// The system's scheme until somebody chooses; the choice is this browser's.
const root = document.documentElement
const button = existing('theme', HTMLButtonElement)
const words = existing('theme-words', HTMLElement)
const systemIsDark = matchMedia('(prefers-color-scheme: dark)')

const chosen = remembered()
if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen
show()

systemIsDark.addEventListener('change', show)
button.addEventListener('click', () => {
  root.dataset.theme = isDark() ? 'light' : 'dark'
  remember(root.dataset.theme)
  show()
})

function isDark() {
  return root.dataset.theme === undefined ? systemIsDark.matches : root.dataset.theme === 'dark'
}

/** The button says what it leads to. */
function show() {
  words.textContent = isDark() ? 'Light' : 'Dark'
  button.setAttribute('aria-label', isDark() ? 'Light colours' : 'Dark colours')
}

/** A browser may forbid to remember anything. */
function remembered() {
  try {
    return localStorage.getItem('theme')
  } catch {
    return null
  }
}

/** @param {string} theme */
function remember(theme) {
  try {
    localStorage.setItem('theme', theme)
  } catch {}
}

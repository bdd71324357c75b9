// Where the server lies: what stands before all of its addresses, such as "/photos"; "" where it has a host of its own.

export const root = new URL(import.meta.url).pathname.replace(/\/static\/(?:[0-9a-f]{12}\/)?js\/root\.js$/, "");

// The same of the whole server, where a collection is one of several: people sign in and out there.
export const server = document.documentElement.dataset.server ?? root;

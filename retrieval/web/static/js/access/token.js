// Tells the viewer that frames this page what the server has written into it.
const { message, origin } = document.currentScript.dataset;
if (window.parent !== window) window.parent.postMessage(JSON.parse(message), origin);
